"""The machine for any number of pages: who comes up when, at a cost that does not grow with their number.

A page waits in a bucket of a wheel until the moment at which a crawl of it will be worth the price (`place`). Then it
goes to a shelf by its value, or to its host while that rests (`hosts`). Each tick takes a page from the highest shelf
(`turn`) and moves the price a little (`price`). `table` is the memory of all that, `memory` how compiled code reaches
it, `events` what happens to pages from outside, and `scheduler` what others call.
"""

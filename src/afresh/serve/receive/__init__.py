"""What others send to a running `afresh`: a small application, its listener and its tokens.

`listener` and `application` know nothing of signals: another room, such as a console, adds its own routes to them.
"""

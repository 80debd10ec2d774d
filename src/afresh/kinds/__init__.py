"""What kind of page this is: criteria read off it in one pass, a small network, and a Bayes classifier over both."""

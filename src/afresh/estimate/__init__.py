"""What is believed of each page: change rate, signal quality and request rate, learned from evidence."""

"""What programs read: JSON documents, and the values that every other presentation is made from."""

"""JSON documents for programs; every other presentation is made from their values."""

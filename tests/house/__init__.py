"""The house: what holds for the code as a whole."""

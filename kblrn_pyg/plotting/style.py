"""Colours that people with any colour vision can tell apart (Okabe and Ito)."""

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PINK = "#CC79A7"
SKY = "#56B4E9"
AMBER = "#E69F00"
BLACK = "#000000"
DARK = "#333333"
GREY = "#666666"
PALE = "#EEF3F7"

# In the order in which the lines or bars of a figure take them.
CYCLE = (BLUE, GREEN, ORANGE, PINK, SKY, AMBER, BLACK)

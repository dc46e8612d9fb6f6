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
LIGHT = "#BBBBBB"
PALE = "#EEF3F7"

# In the order in which lines of one figure take them.
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER, BLACK)

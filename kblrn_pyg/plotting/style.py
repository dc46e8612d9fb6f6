"""Colours that people with any colour vision can tell apart (Okabe and Ito)."""

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREY = "#666666"

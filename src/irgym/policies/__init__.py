"""How actions are chosen by scores: their layout, drawing them, and policies that need no torch."""

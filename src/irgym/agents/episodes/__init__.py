"""Episodes: collecting them in lockstep, and the data that learners make of them."""

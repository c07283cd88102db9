"""Rules that every environment and task must keep, checked on random walks.

`irgym.check_environment` and `irgym.check_task` run them. `rules` holds the rules, `case` the schedule and
states that a rule looks at, `walking` the walks, `checking` the two functions, and
`checked` what they return.
"""

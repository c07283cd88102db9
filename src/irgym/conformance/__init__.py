"""Rules that environments, tasks and agents must keep.

`irgym.check_environment` and `irgym.check_task` (`checking`) take random walks (`walking`) and return an
account (`checked`); `irgym.check_agent` (`agents`) runs short trainings (`training`, `trial`). `rules` holds
the rules; `case` is a schedule, and the states, that a rule looks at.
"""

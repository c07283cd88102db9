"""Environment `loops`: schedules of the loop nest of a tensor contraction (LoopTune, arXiv 2309.01825)."""

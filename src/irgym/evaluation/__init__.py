"""How good results are, said honestly: final measurements, comparisons, intervals, reports."""

"""Studies too slow for the tests: paired ratios against the oracle and against peers."""

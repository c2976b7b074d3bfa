"""Studies too slow for the tests: paired ratios against the oracle and against peers."""

# What the attacks of the studies are made on, told to the means: unit, uncorrelated noise.
WHITE: dict[str, None] = {"scale": None, "covariance": None}

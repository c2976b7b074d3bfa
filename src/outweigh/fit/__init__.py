"""The road of a fit, one station a file: noise, problem, workspace, search, posterior, road, score."""

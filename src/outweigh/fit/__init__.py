"""The road of a fit, a station a file: noise, problem, workspace, search, posterior, score."""

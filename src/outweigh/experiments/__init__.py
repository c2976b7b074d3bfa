"""Experiments: spec -> runs -> records -> summaries -> figures.

An :class:`~outweigh.experiments.spec.Experiment` comes from a TOML file and enumerates its runs.
The runner does the missing ones and appends their records to a crash-safe
:class:`~outweigh.experiments.store.Store`. Summaries and figures are made from the store alone.
"""

"""A table of parts, ten of them with the width in inches, and what the command line says of it."""

import csv
from contextlib import chdir
from tempfile import TemporaryDirectory

import numpy as np

from outweigh.cli import main

rng = np.random.default_rng(0)
length = rng.normal(80.0, 8.0, 600)  # millimetres
width = 0.5 * length + rng.normal(0.0, 1.0, 600)
mass = 0.3 * length + 0.2 * width + rng.normal(0.0, 0.5, 600)
wrong = rng.choice(600, 10, replace=False)
width[wrong] /= 25.4  # inches

with TemporaryDirectory() as folder, chdir(folder):
    with open("parts.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["part", "length", "width", "mass"])
        for number, row in enumerate(zip(length, width, mass, strict=True)):
            table.writerow([f"P{number:03d}", *(f"{value:.2f}" for value in row)])
    main(["fit", "mean", "parts.csv"])

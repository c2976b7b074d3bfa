"""The paper beside the road: its algorithms to the letter, stability, the Moreau envelope."""

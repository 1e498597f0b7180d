"""The judge: a strict model, an event oracle, and a stage that runs agents in virtual time between the two."""

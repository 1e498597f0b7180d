"""The cases that are played through the gateway: clients far away, their connections, and what they see."""

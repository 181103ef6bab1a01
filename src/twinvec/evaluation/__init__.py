"""Evaluating vectors as the papers do, with intervals and tests: tasks are data, running them is a function."""

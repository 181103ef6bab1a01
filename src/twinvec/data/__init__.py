"""Tables in and out, training examples, their checks, and public data sets."""

from __future__ import annotations

"""The rivals, one module each: ``DISTRIBUTION``, and ``text``, a function that makes one id as text."""

"""The fixture of the tests of nodes."""

from robot import robot

__all__ = ['robot']

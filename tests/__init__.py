"""Tests of swarmbo."""

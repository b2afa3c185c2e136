import unittest

from textkit import wrap


class WrapTest(unittest.TestCase):
    def test_lines_break_between_words(self):
        self.assertEqual(wrap("one two three", 7), ["one two", "three"])

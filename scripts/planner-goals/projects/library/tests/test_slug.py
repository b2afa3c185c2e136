import unittest

from textkit import slug


class SlugTest(unittest.TestCase):
    def test_other_characters_become_one_dash(self):
        self.assertEqual(slug("Tea & Coffee, daily!"), "tea-coffee-daily")

    def test_an_empty_text_stays_empty(self):
        self.assertEqual(slug(""), "")

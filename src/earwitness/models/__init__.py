"""Who answers and who speaks."""

"""``baseline/listener``: what plain signal features tell of a scene, without words and without a neural network."""

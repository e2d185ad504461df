"""What translation and captioning share: networks over pairs, search, evaluation of texts."""

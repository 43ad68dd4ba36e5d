"""Records of Iggy's layouts, as bytes: found and checked by one scanner, written by one encoder."""

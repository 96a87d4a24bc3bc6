"""Pure codecs: our events in, frames of other protocols out."""

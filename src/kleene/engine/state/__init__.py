"""What an engine holds, counts and keeps."""

"""What a choice comes to, estimated without making code: instructions, registers, stack and frame."""

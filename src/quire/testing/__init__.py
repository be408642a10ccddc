"""What checks documents and the engine itself without a model, a person or a clock: here, the simulator."""

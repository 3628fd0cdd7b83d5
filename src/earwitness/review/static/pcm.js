"use strict";
// Hands over the samples as they come from the microphone, in blocks, nothing done to them.
class Pcm extends AudioWorkletProcessor {
  constructor() {
    super();
    this.block = new Float32Array(2048);
    this.filled = 0;
  }

  process(inputs) {
    const samples = inputs[0][0];
    if (!samples) return true;
    for (let at = 0; at < samples.length;) {
      const many = Math.min(samples.length - at, this.block.length - this.filled);
      this.block.set(samples.subarray(at, at + many), this.filled);
      this.filled += many;
      at += many;
      if (this.filled === this.block.length) {
        this.port.postMessage(this.block, [this.block.buffer]);
        this.block = new Float32Array(2048);
        this.filled = 0;
      }
    }
    return true;
  }
}
registerProcessor("pcm", Pcm);

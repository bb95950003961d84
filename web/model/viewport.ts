// SPDX-License-Identifier: Apache-2.0

// A window narrower than this shows single nanoseconds, and there is nothing finer.
const kSpanMinNs = 50;
// How far beyond the events a person may scroll, as a share of the window.
const kOverscroll = 0.5;

// The stretch of time that is shown, in nanoseconds relative to the capture's begin.
export class Viewport {
  from: number;
  to: number;

  constructor(public begin: number, public end: number) {
    this.from = begin;
    this.to = Math.max(end, begin + kSpanMinNs);
  }

  get span(): number {
    return this.to - this.from;
  }

  timeAt(x: number, width: number): number {
    return this.from + x / width * this.span;
  }

  xOf(time: number, width: number): number {
    return (time - this.from) / this.span * width;
  }

  // Makes the window factor times as wide and keeps the time at this fraction of it where it is.
  zoom(factor: number, fraction: number): void {
    const fixed = this.from + this.span * fraction;
    const span = this.limitSpan(this.span * factor);
    this.place(fixed - span * fraction, span);
  }

  // Moves by a fraction of the window.
  pan(fraction: number): void {
    this.place(this.from + this.span * fraction, this.span);
  }

  show(from: number, to: number): void {
    const span = this.limitSpan(to - from);
    this.place((from + to) / 2 - span / 2, span);
  }

  showAll(): void {
    const margin = (this.end - this.begin) * 0.01;
    this.show(this.begin - margin, this.end + margin);
  }

  // Keeps the width and moves only if the stretch is not inside the middle of the window.
  reveal(from: number, to: number): void {
    if (to - from > this.span) return this.show(from - (to - from) * 0.5, to + (to - from) * 0.5);
    const margin = this.span * 0.05;
    if (from >= this.from + margin && to <= this.to - margin) return;
    this.place((from + to) / 2 - this.span / 2, this.span);
  }

  private limitSpan(span: number): number {
    const most = Math.max((this.end - this.begin) * 1.5, kSpanMinNs * 4);
    return Math.min(most, Math.max(kSpanMinNs, span));
  }

  private place(from: number, span: number): void {
    const least = this.begin - span * kOverscroll;
    const most = Math.max(least, this.end - span * (1 - kOverscroll));
    this.from = Math.min(most, Math.max(least, from));
    this.to = this.from + span;
  }
}

// SPDX-License-Identifier: Apache-2.0

// Parses a decimal 64-bit integer as proto3 JSON writes it. Returns 0 for anything else, because answers are not
// trusted.
export function parseInteger(text: unknown): bigint {
  if (typeof text === 'number' && Number.isSafeInteger(text)) return BigInt(text);
  return typeof text === 'string' && /^-?\d{1,20}$/.test(text) ? BigInt(text) : 0n;
}

// The same for counts, which a float64 holds well enough to be shown.
export function parseCount(text: unknown): number {
  return Number(parseInteger(text));
}

// Converts between the API's absolute times (decimal strings) and float64 nanoseconds since the capture's begin.
// A float64 holds an absolute Unix time to 256 ns only; relative ones are exact for 104 days.
export class TimeBase {
  readonly originNs: bigint;

  constructor(originNs: unknown) {
    this.originNs = parseInteger(originNs);
  }

  relative(absoluteNs: unknown): number {
    return Number(parseInteger(absoluteNs) - this.originNs);
  }

  absolute(relativeNs: number): string {
    return (this.originNs + BigInt(Math.round(relativeNs))).toString();
  }
}

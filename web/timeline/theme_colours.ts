// SPDX-License-Identifier: Apache-2.0

// The style sheet's colours, for what is drawn on canvases.
export class ThemeColours {
  readonly dark: boolean;
  readonly background: string;
  readonly band: string;
  readonly header: string;
  readonly unknown: string;
  readonly line: string;
  readonly grid: string;
  readonly text: string;
  readonly faint: string;
  readonly accent: string;
  readonly loss: string;
  readonly suspension: string;
  readonly damage: string;
  readonly hit: string;
  readonly verdict: string;
  readonly label: string;
  // The same as pixels.
  readonly pixels: {background: number, band: number, header: number, unknown: number, grid: number};

  constructor() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(name).trim() || '#888888';
    this.dark = document.documentElement.dataset.theme === 'dark';
    this.background = colour('--lane');
    this.band = colour('--lane-band');
    this.header = colour('--lane-header');
    this.unknown = colour('--lane-unknown');
    this.line = colour('--lane-line');
    this.grid = colour('--lane-grid');
    this.text = colour('--text');
    this.faint = colour('--text-faint');
    this.accent = colour('--accent');
    this.loss = colour('--loss');
    this.suspension = colour('--suspension');
    this.damage = colour('--damage');
    this.hit = colour('--hit');
    this.verdict = colour('--verdict');
    this.label = colour('--span-text');
    this.pixels = {
      background: abgrOf(this.background),
      band: abgrOf(this.band),
      header: abgrOf(this.header),
      unknown: abgrOf(this.unknown),
      grid: abgrOf(this.grid)
    };
  }
}

// "#rrggbb" as a pixel of an ImageData on a little-endian machine.
export function abgrOf(hex: string): number {
  const value = parseInt(hex.slice(1, 7), 16) || 0;
  return (0xff000000 | (value & 0xff) << 16 | (value & 0xff00) | (value >> 16 & 0xff)) >>> 0;
}

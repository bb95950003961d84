// SPDX-License-Identifier: Apache-2.0
import {kTones} from './colour_group';

// Colours of spans: one hue a category, light shades under dark text (or the reverse). Within it, names have tones that
// differ in lightness and saturation, for eyes that do not tell red from green, and a little in hue.

export const kVariants = 3;  // exact, merged, broken (open, or its start was lost)
const kHues: Record<string, [number, number]> = {
  execution: [214, 62],
  collective: [28, 78],
  barrier: [4, 66],
  wait: [328, 30],
  communication: [28, 78],
  transfer: [172, 42],
  dma: [172, 42],
  memory: [268, 42],
  host: [210, 12],
  framework: [146, 36],
  annotation: [48, 40],
  step: [48, 62],
  hardware: [196, 58],
  error: [352, 70],
  scheduling: [300, 30],
  synchronisation: [330, 42],
  counter: [200, 30],
};
const kOthers: [number, number][] =
    [[230, 38], [96, 32], [318, 34], [60, 40], [186, 28], [14, 40], [280, 28], [130, 26]];

// Of each tone: what is added to the hue in degrees, what the saturation is multiplied by, and what is added to the
// lightness in percent (and taken from it in the dark).
const kToneShifts: [number, number, number][] =
    [[0, 1, 0], [7, 0.45, 5], [-9, 1.15, -3], [9, 1.25, 4], [-6, 0.4, -2], [2, 0.75, 11]];

// The colours of each category: kTones times kVariants, in this order.
export class Palette {
  readonly css: string[] = [];
  readonly abgr: Uint32Array;

  constructor(categories: readonly string[], readonly dark: boolean) {
    this.abgr = new Uint32Array(Math.max(1, categories.length) * kTones * kVariants);
    let at = 0;
    for (const category of categories) {
      const [hue, saturation] = hueOf(category);
      for (const [turn, factor, lighter] of kToneShifts) {
        for (let variant = 0; variant < kVariants; ++variant, ++at) {
          const s = Math.min(100, saturation * factor * (variant === 1 ? 0.8 : 1) * (dark ? 0.72 : 1));
          // Yellow is brighter than its lightness tells.
          const light =
              lightness(dark, variant) + (dark ? -lighter / 2 : lighter) - (dark && hue > 40 && hue < 75 ? 4 : 0);
          const rgb = hslToRgb((hue + turn + 360) % 360, s, light);
          this.css[at] = `rgb(${rgb.join(',')})`;
          this.abgr[at] = (0xff000000 | rgb[2] << 16 | rgb[1] << 8 | rgb[0]) >>> 0;
        }
      }
    }
  }

  // The first colour of a category.
  cssOf(category: number): string|undefined {
    return this.css[category * kTones * kVariants];
  }
}

function lightness(dark: boolean, variant: number): number {
  return dark ? [37, 31, 41][variant] : [76, 82, 68][variant];
}

function hueOf(category: string): [number, number] {
  const known = kHues[category.toLowerCase()];
  if (known) return known;
  let hash = 0;
  for (let i = 0; i < category.length; ++i) hash = (Math.imul(hash, 31) + category.charCodeAt(i)) >>> 0;
  return kOthers[hash % kOthers.length];
}

export function hslToRgb(hue: number, saturation: number, light: number): [number, number, number] {
  const s = saturation / 100, l = light / 100, a = s * Math.min(l, 1 - l);
  const channel = (n: number): number => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

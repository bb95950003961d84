// SPDX-License-Identifier: Apache-2.0
// Colours of spans: one hue a category, light shades under dark text (or the reverse). Neighbouring hues differ in
// lightness too, for eyes that do not tell red from green.

export const kVariants = 3;  // exact, merged, broken (open, or its start was lost)
const kHues: Record<string, [number, number]> = {
  execution: [214, 62],
  collective: [28, 78],
  barrier: [8, 66],
  communication: [28, 78],
  transfer: [172, 42],
  dma: [172, 42],
  memory: [268, 42],
  host: [210, 12],
  framework: [146, 36],
  step: [48, 62],
  hardware: [196, 58],
  error: [352, 70],
  scheduling: [300, 30],
  synchronisation: [330, 42],
  counter: [200, 30],
};
const kOthers: [number, number][] =
    [[230, 38], [96, 32], [318, 34], [60, 40], [186, 28], [14, 40], [280, 28], [130, 26]];

export class Palette {
  readonly css: string[] = [];
  readonly abgr: Uint32Array;

  constructor(categories: string[], readonly dark: boolean) {
    this.abgr = new Uint32Array(Math.max(1, categories.length) * kVariants);
    categories.forEach((category, i) => {
      const [hue, saturation] = hueOf(category);
      for (let variant = 0; variant < kVariants; ++variant) {
        const rgb = hslToRgb(hue, saturation * (variant === 1 ? 0.8 : 1) * (dark ? 0.72 : 1), lightness(dark, variant));
        this.css[i * kVariants + variant] = `rgb(${rgb.join(',')})`;
        this.abgr[i * kVariants + variant] = (0xff000000 | rgb[2] << 16 | rgb[1] << 8 | rgb[0]) >>> 0;
      }
    });
  }
}

function lightness(dark: boolean, variant: number): number {
  return dark ? [37, 31, 44][variant] : [76, 82, 68][variant];
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

// SPDX-License-Identifier: Apache-2.0
import {colourGroup, kTones, toneOf} from './colour_group';
import {safeText} from './safe_text';

// Names come from traced programs, which may make new ones for ever.
const kNamesMax = 1 << 18;
const kCategoriesMax = 1000;
const kFurther = '(further names)';

// Gives each name and each category of all answers one number, so that widths and colours are looked up by index.
// Names and categories beyond the limits share one each.
export class NameTable {
  readonly names: string[] = [];
  readonly categoryOf: number[] = [];  // its colour group
  readonly colourOf: number[] = [];    // categoryOf * kTones + the name's tone
  readonly categories: string[] = [];
  private readonly byKey = new Map<string, number>();
  private readonly byCategory = new Map<string, number>();

  constructor(private readonly namesMax = kNamesMax, private readonly categoriesMax = kCategoriesMax) {}

  category(text: string): number {
    let number = this.byCategory.get(text);
    if (number === undefined) {
      if (this.categories.length >= this.categoriesMax && text !== 'other') return this.category('other');
      number = this.categories.length;
      this.categories.push(safeText(text, 60));
      this.byCategory.set(text, number);
    }
    return number;
  }

  // A name in two categories has two numbers.
  number(name: string, category: string): number {
    const key = category + '\u0000' + name;
    let number = this.byKey.get(key);
    if (number === undefined) {
      if (this.names.length >= this.namesMax && name !== kFurther) return this.number(kFurther, 'other');
      number = this.names.length;
      this.names.push(safeText(name, 300));
      const group = this.category(colourGroup(name, category));
      this.categoryOf.push(group);
      this.colourOf.push(group * kTones + toneOf(name));
      this.byKey.set(key, number);
    }
    return number;
  }
}

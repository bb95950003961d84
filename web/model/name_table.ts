// SPDX-License-Identifier: Apache-2.0
import {colourGroup} from './colour_group';
import {safeText} from './safe_text';

// Gives each name and each category of all answers one number, so that widths and colours are looked up by index.
export class NameTable {
  readonly names: string[] = [];
  readonly categoryOf: number[] = [];  // its colour group
  readonly categories: string[] = [];
  private readonly byKey = new Map<string, number>();
  private readonly byCategory = new Map<string, number>();

  category(text: string): number {
    let number = this.byCategory.get(text);
    if (number === undefined) {
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
      number = this.names.length;
      this.names.push(safeText(name, 300));
      this.categoryOf.push(this.category(colourGroup(name, category)));
      this.byKey.set(key, number);
    }
    return number;
  }
}

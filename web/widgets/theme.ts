// SPDX-License-Identifier: Apache-2.0

const kKey = 'neurontrace.theme';

// Light or dark: as the system prefers, until a person switches. Fires "themechange" at the document.
export class Theme {
  private readonly system = matchMedia('(prefers-color-scheme: dark)');

  constructor() {
    this.system.addEventListener('change', () => this.apply());
    this.apply();
  }

  get isDark(): boolean {
    const chosen = this.chosen();
    return chosen ? chosen === 'dark' : this.system.matches;
  }

  toggle(): void {
    try {
      localStorage.setItem(kKey, this.isDark ? 'light' : 'dark');
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    document.documentElement.dataset.theme = this.isDark ? 'dark' : 'light';
    this.apply();
  }

  private chosen(): string {
    try {
      return localStorage.getItem(kKey) ?? '';
    } catch {
      return '';
    }
  }

  private apply(): void {
    document.documentElement.dataset.theme = this.isDark ? 'dark' : 'light';
    document.dispatchEvent(new Event('themechange'));
  }
}

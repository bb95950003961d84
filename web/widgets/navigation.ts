// SPDX-License-Identifier: Apache-2.0

// One of the pages of the bundle, while it is shown.
export interface Page {
  readonly element: HTMLElement;
  // Ends its timers, requests and listeners of the document.
  close(): void;
  // Writes what is seen into the address now, if that is done with a delay.
  saveView?(): void;
}

// Shows another page without loading the bundle again.
export interface Navigation {
  go(path: string): void;
}

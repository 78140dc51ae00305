import { useEffect, useRef } from "react";

export interface Hotkey {
  /** One key (`c`), a sequence (`g j`), or a key with Ctrl or ⌘ (`mod+k`). */
  keys: string;
  /** The description shown in the help. */
  what: string;
  run: () => void;
  /** Holding the key repeats the action. */
  repeats?: boolean;
}

/** The bindings of all mounted components. If two bind the same keys, the last mounted one wins. */
const layers: { current: readonly Hotkey[] }[] = [];
const SEQUENCE_MS = 1_200;
let typed = "";
let typedAtMs = 0;

/**
 * Binds keys while the component is mounted. While the user types, only keys with Ctrl or ⌘ work.
 * While a dialog or a menu is open, only `mod+k` works.
 */
export function useHotkeys(hotkeys: readonly Hotkey[]): void {
  const layer = useRef(hotkeys);
  layer.current = hotkeys;
  useEffect(() => {
    layers.push(layer);
    if (layers.length === 1) window.addEventListener("keydown", onKeyDown);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
      if (layers.length === 0) window.removeEventListener("keydown", onKeyDown);
    };
  }, []);
}

export const hotkeysNow = (): Hotkey[] => {
  const byKeys = new Map<string, Hotkey>();
  for (const layer of layers) for (const each of layer.current) byKeys.set(each.keys, each);
  return [...byKeys.values()];
};

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const isMod = event.ctrlKey || event.metaKey;
  if (isDialogOpen() && !(isMod && event.key.toLowerCase() === "k")) return;
  if (!isMod && isTyping(event.target)) return;
  if (event.key === "Enter" && (event.target as Element).closest?.("a, button, summary")) return;
  const pressed = isMod ? `mod+${event.key.toLowerCase()}` : event.key;
  const recent = performance.now() - typedAtMs < SEQUENCE_MS ? typed : "";
  typed = isMod ? "" : pressed;
  typedAtMs = performance.now();
  const found = find(`${recent} ${pressed}`) ?? find(pressed);
  if (!found) return;
  event.preventDefault();
  // A held key runs its action only once, unless `repeats` is set.
  if (event.repeat && !found.repeats) return;
  typed = "";
  focusButtonOf(pressed);
  found.run();
}

/**
 * If no control has the focus, focuses the button with this shortcut. So if the shortcut opens a
 * dialog, the focus returns to the button when the dialog closes.
 */
function focusButtonOf(pressed: string): void {
  const { activeElement } = document;
  if (activeElement && activeElement !== document.body && activeElement.id !== "main") return;
  const shortcut = pressed.replace(
    /^mod\+(.)(.*)$/,
    (_, first: string, rest: string) => `Control+${first.toUpperCase()}${rest}`,
  );
  const buttons = document.querySelectorAll<HTMLElement>("[aria-keyshortcuts]");
  [...buttons]
    .find((each) => each.getAttribute("aria-keyshortcuts")?.split(" ").includes(shortcut))
    ?.focus({ preventScroll: true });
}

const find = (keys: string): Hotkey | undefined => hotkeysNow().find((each) => each.keys === keys);

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
  !(target instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(target.type));

/** Whether a dialog or a menu is open. A dialog or menu that is fading out is not open. */
const isDialogOpen = (): boolean =>
  document.querySelector(
    '[role="dialog"]:not([data-closed]), [role="alertdialog"]:not([data-closed]), [role="menu"]:not([data-closed])',
  ) !== null;

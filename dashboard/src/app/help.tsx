import { Dialog } from "../ui/dialog";
import { hotkeysNow } from "../ui/hotkeys";
import styles from "./help.module.css";

/** The keyboard shortcuts of this page and the global ones. */
export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const hotkeys = open ? hotkeysNow() : [];
  const go = hotkeys.filter(({ keys }) => keys.startsWith("g "));
  const rest = hotkeys.filter(({ keys }) => !keys.startsWith("g "));
  return (
    <Dialog open={open} onClose={onClose} title="Keyboard shortcuts" wide>
      <div className={styles.columns}>
        <Keys title="Here" hotkeys={[...rest, { keys: "Escape", what: "Close what is open" }]} />
        <Keys title="Go to" hotkeys={go} />
      </div>
    </Dialog>
  );
}

function Keys({ title, hotkeys }: { title: string; hotkeys: { keys: string; what: string }[] }) {
  return (
    <section>
      <h3 className={styles.title}>{title}</h3>
      <dl className={styles.list}>
        {hotkeys.map(({ keys, what }) => (
          <div key={keys} className={styles.entry}>
            <dt>
              {keys.split(/[ +]/).map((key) => (
                <kbd key={key}>{NAMES[key] ?? key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const NAMES: Record<string, string> = { mod: "Ctrl or ⌘", Escape: "Esc" };

import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import { useForge } from "../api/context";
import { cx } from "../ui/cx";
import { type FieldInput, Input } from "../ui/field";
import { Time } from "../ui/time";
import { useDebounced } from "../ui/use-debounced";
import styles from "./artifact-picker.module.css";
import { type ArtifactSource, type Offer, offersOf } from "./artifact-source";

interface Props {
  source: ArtifactSource;
  input: FieldInput;
  value: string;
  onChange: (value: string) => void;
  /** Called in addition to `onChange` when the user picks an artifact from the list. */
  onChoose?: (value: string) => void;
}

const MOST = 12;
/**
 * How many artifacts to load per request, for a field that takes ids and for a field that takes
 * URIs. More artifacts are loaded for URIs, because only the URIs of table files are listed
 * (`tablesOf`), and some artifacts have none.
 */
const READ_AT_ONCE = { id: MOST, uri: 60 };
const TYPING_MS = 200;

/**
 * An input with a list of the tenant's artifacts. The user may also type a value that is not in the
 * list, because a worker may know ids that Forge doesn't. Base UI's combobox is not used: while its
 * list is open, it hides the rest of the page from screen readers.
 */
export function ArtifactPicker({ source, input, value, onChange, onChoose }: Props) {
  const listId = useId();
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState<number>();
  const { offers, isLoading } = useOffers(source, value, isOpen);
  useEffect(() => {
    if (active === undefined) return;
    document.getElementById(`${listId}-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active, listId]);
  const chosen = active === undefined ? undefined : offers[active];
  const close = (): void => {
    setOpen(false);
    setActive(undefined);
  };
  const choose = (offer: Offer): void => {
    onChange(offer.value);
    onChoose?.(offer.value);
    close();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setOpen(true);
      const from = active ?? (step > 0 ? -1 : offers.length);
      if (isOpen && offers.length > 0) setActive((from + step + offers.length) % offers.length);
    }
    if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      close();
    }
    if (event.key === "Enter" && isOpen && chosen) {
      event.preventDefault();
      choose(chosen);
    }
  };
  return (
    <div className={styles.picker}>
      <Input
        {...input}
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && chosen ? `${listId}-${active}` : undefined}
        spellCheck={false}
        placeholder={`Choose, or paste ${source.takes === "id" ? "an id" : "a URI"}`}
        value={value}
        onChange={({ target }) => {
          onChange(target.value);
          setOpen(true);
          setActive(undefined);
        }}
        onClick={() => setOpen(true)}
        onBlur={close}
        onKeyDown={onKeyDown}
      />
      <div className={cx(styles.popup, !isOpen && styles.closed)}>
        <p className={styles.status} role="status">
          {isOpen && offers.length === 0 && statusOf(source, value, isLoading)}
        </p>
        <div id={listId} className={styles.list} role="listbox" aria-label={`Your ${source.type}s`}>
          {isOpen &&
            offers.map((offer, index) => (
              // The input keeps the focus and handles all keys.
              // biome-ignore lint/a11y/useFocusableInteractive: see above
              <div
                key={offer.value}
                id={`${listId}-${index}`}
                role="option"
                aria-selected={index === active}
                className={cx(styles.item, index === active && styles.active)}
                onPointerMove={() => setActive(index)}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => choose(offer)}
              >
                <span className={styles.title}>{offer.title}</span>
                <span className={styles.age}>
                  <Time at={offer.at} />
                </span>
                <span className={styles.note}>{offer.note}</span>
              </div>
            ))}
        </div>
      </div>
    </div>
  );
}

function statusOf({ type }: ArtifactSource, value: string, isLoading: boolean): string {
  if (isLoading) return "Looking …";
  if (value.trim() === "") return `You have no ${type} yet that could be chosen here.`;
  if (type === "artifact") return "No artifact of yours matches.";
  return `No ${type} of yours matches. What you typed is passed to the worker unchanged.`;
}

/**
 * Returns the newest artifacts. If the user has typed a text, returns only artifacts whose id
 * starts with the text, or whose name contains it.
 */
function useOffers(source: ArtifactSource, value: string, isOpen: boolean) {
  const forge = useForge();
  const [offeredValues, setOfferedValues] = useState<readonly string[]>([]);
  // Does not search for a URI, or for a value that the list has offered. The list then shows the
  // newest artifacts.
  const typed = offeredValues.includes(value) || value.includes("://") ? "" : value.trim();
  const q = useDebounced(typed, TYPING_MS);
  const { data = [], isPending } = useQuery({
    queryKey: ["artifacts", "offers", source, q],
    enabled: isOpen,
    queryFn: async () => {
      const filters = {
        ...(source.type === "artifact" ? {} : { type: source.type }),
        pageSize: READ_AT_ONCE[source.takes],
        ...(q ? { q } : {}),
      };
      const page = await forge.artifacts.list(filters).page();
      const offers = page.items.flatMap((artifact) => offersOf(artifact, source)).slice(0, MOST);
      setOfferedValues((before) => [
        ...new Set([...before, ...offers.map((offer) => offer.value)]),
      ]);
      return offers;
    },
  });
  return { offers: data, isLoading: isPending };
}

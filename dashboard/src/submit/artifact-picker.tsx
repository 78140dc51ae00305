import { Autocomplete } from "@base-ui/react/autocomplete";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useForge } from "../api/context";
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
}

const MOST = 12;
/** An artifact whose files Forge can't see has no URI to offer: there may be many of them. */
const READ_AT_ONCE = { id: MOST, uri: 60 };
const TYPING_MS = 200;

/** Offers the tenant's artifacts. Anything else may be typed: a worker may know ids that Forge doesn't. */
export function ArtifactPicker({ source, input, value, onChange }: Props) {
  const [isOpen, setOpen] = useState(false);
  const { offers, isLoading } = useOffers(source, value, isOpen);
  return (
    <Autocomplete.Root
      items={offers}
      mode="none"
      openOnInputClick
      open={isOpen}
      onOpenChange={setOpen}
      value={value}
      onValueChange={onChange}
      itemToStringValue={(offer) => offer.value}
    >
      <Autocomplete.Input
        render={<Input {...input} spellCheck={false} />}
        placeholder={`Choose a ${source.type}, or paste ${source.takes === "id" ? "an id" : "a URI"}`}
      />
      <Autocomplete.Portal>
        <Autocomplete.Positioner className={styles.positioner} sideOffset={4} align="start">
          <Autocomplete.Popup className={styles.popup}>
            <Autocomplete.Status className={styles.status}>
              {offers.length === 0 && statusOf(source, value, isLoading)}
            </Autocomplete.Status>
            <Autocomplete.List>
              {(offer: Offer) => (
                <Autocomplete.Item key={offer.value} value={offer} className={styles.item}>
                  <span className={styles.title}>{offer.title}</span>
                  <span className={styles.age}>
                    <Time at={offer.at} />
                  </span>
                  <span className={styles.note}>{offer.note}</span>
                </Autocomplete.Item>
              )}
            </Autocomplete.List>
          </Autocomplete.Popup>
        </Autocomplete.Positioner>
      </Autocomplete.Portal>
    </Autocomplete.Root>
  );
}

function statusOf({ type }: ArtifactSource, value: string, isLoading: boolean): string {
  if (isLoading) return "Looking …";
  if (value.trim() === "") return `You have no ${type} yet that could be chosen here.`;
  return `No ${type} of yours matches. What you typed is handed to the worker as it is.`;
}

/** The newest artifacts, or those whose id or name has what is typed. */
function useOffers(source: ArtifactSource, value: string, isOpen: boolean) {
  const forge = useForge();
  const [chosen, setChosen] = useState<readonly string[]>([]);
  // What was chosen, or is a URI, is no search: the list then shows what else there is.
  const typed = chosen.includes(value) || value.includes("://") ? "" : value.trim();
  const q = useDebounced(typed, TYPING_MS);
  const { data = [], isPending } = useQuery({
    queryKey: ["artifacts", "offers", source, q],
    enabled: isOpen,
    queryFn: async () => {
      const filters = {
        type: source.type,
        pageSize: READ_AT_ONCE[source.takes],
        ...(q ? { q } : {}),
      };
      const page = await forge.artifacts.list(filters).page();
      const offers = page.items.flatMap((artifact) => offersOf(artifact, source)).slice(0, MOST);
      setChosen((before) => [...new Set([...before, ...offers.map((offer) => offer.value)])]);
      return offers;
    },
  });
  return { offers: data, isLoading: isPending };
}

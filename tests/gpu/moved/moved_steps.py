# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of PyTorch for VMs that are moved and cloned (moved.py).

	moved_steps.py train STEPS	trains a transformer; prints the bits of each tenth loss, and those of its weights
	moved_steps.py serve		a language model that is loaded and has spoken once answers each line of its input
	moved_steps.py graph		the same, with each word by a CUDA graph
	moved_steps.py imports		says that all files are there

FILES names a file that gets the paths of all that the program has loaded, one in a line."""
import glob
import os
import sys

from training_steps import DEVICE, F, Model, digest, log, nn, sdpa_kernel, SDPBackend, torch

WIDTH, WORDS, LENGTH, BATCH = 256, 1000, 64, 16


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.1, batch_first=True, norm_first=True)
                                     for _ in range(2)])

    def forward(self, text):
        x = self.words(text) + self.places.weight
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, device=text.device)
        for layer in self.layers:
            x = layer(x, mask)
        return x @ self.words.weight.T


def train(steps):
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(3)
    model = Transformer().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for n in range(1, steps + 1):
        text = torch.randint(WORDS, (BATCH, LENGTH + 1)).to(DEVICE)
        with sdpa_kernel(SDPBackend.MATH):
            loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if n % 10 == 0:
            print(f"step {n}: {digest(loss)}", flush=True)
    print("weights", digest(torch.cat([p.flatten() for p in model.parameters()])), flush=True)


@torch.no_grad()
def serve(by_graph=False):
    torch.manual_seed(6)
    model = Model(layers=8, width=1024, heads=8).to(DEVICE).half()
    word, place = torch.zeros(1, dtype=torch.long, device=DEVICE), torch.zeros(1, dtype=torch.long, device=DEVICE)

    def speak(tokens, first):
        model.cache.zero_(), word.fill_(1), place.zero_()
        said = []
        for n in range(tokens):
            word.copy_(next_word())
            place.add_(1)
            said.append(word.clone())
            if n == 0:
                first(f"first {said[0].item()}")
        return digest(torch.cat(said))

    def next_word():
        return model(word, place)

    speak(3, log)
    if by_graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(word, place)

        def next_word():
            graph.replay()
            return out

        speak(3, log)
    print("warm", flush=True)
    for _ in sys.stdin:
        print("said", speak(32, lambda text: print(text, flush=True)), flush=True)


def loaded():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.count("/")}
    # PyTorch looks for a program there when it is imported.
    tools = os.path.join(os.path.dirname(torch.__file__), "bin")
    paths |= {os.path.join(tools, name) for name in os.listdir(tools)}
    for module in list(sys.modules.values()):
        paths |= {getattr(module, name, None) for name in ("__file__", "__cached__")}
    paths = {p for p in paths if isinstance(p, str) and os.path.isfile(p)}
    # Some modules put an object in their place that does not tell the file.
    for folder in {os.path.dirname(p) for p in paths if p.endswith(".py")}:
        paths |= set(glob.glob(f"{folder}/*.py"))
    return sorted(paths)


if sys.argv[1] == "train":
    train(int(sys.argv[2]))
elif sys.argv[1] == "imports":
    print("all files are there")
else:
    serve(by_graph=sys.argv[1] == "graph")
if "FILES" in os.environ:
    with open(os.environ["FILES"], "w", encoding="utf-8") as out:
        out.write("\n".join(loaded()) + "\n")

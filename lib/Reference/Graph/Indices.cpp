// Ops that find entries by numbers.
#include "Calls.h"

using namespace ctxc::reference;
using llvm::ArrayRef;

/// The entry that `number` counts, also from behind; none, and a failure, for one that is not
/// there.
static std::optional<int64_t> entry(Call &c, double number, int64_t size) {
  int64_t index = int64_t(number);
  index += index < 0 ? size : 0;
  if (index >= 0 && index < size)
    return index;
  c.fail("has the index " + llvm::Twine(int64_t(number)) + ", and its operand " +
         llvm::Twine(size) + " entries");
  return std::nullopt;
}

Results meanings::embedding(Call &c) {
  Array table = c.tensor("weight").contiguous(), ids = c.tensor("indices").contiguous();
  Array result(Kind::Float, c.resultShape());
  int64_t width = table.size(1);
  for (int64_t i = 0; i < ids.count(); ++i)
    if (auto row = entry(c, ids.at(i), table.size(0)))
      std::copy_n(table.data() + *row * width, width, result.data() + i * width);
  return {result};
}

/// index_select: the rows of one axis that a list names.
Results meanings::indexSelect(Call &c) {
  Array x = c.tensor("self"), ids = c.tensor("index").contiguous();
  int64_t axis = c.axis("dim", x.rank());
  Array result(x.kind(), c.resultShape());
  int64_t outer = countOf(x.shape().take_front(axis)), size = x.size(axis);
  int64_t inner = countOf(x.shape().drop_front(axis + 1)), count = ids.count();
  x = x.contiguous();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i)
      if (auto from = entry(c, ids.at(i), size))
        std::copy_n(x.data() + (o * size + *from) * inner, inner,
                    result.data() + (o * count + i) * inner);
  return {result};
}

/// Calls visit(place in an array of `shape`, i) for entry i of `ids`, which gives the place along
/// `axis`.
template <typename Visit>
static void eachGathered(Call &c, ArrayRef<int64_t> shape, const Array &ids, int64_t axis,
                         Visit visit) {
  if (ids.rank() != int64_t(shape.size()))
    return c.fail("has an index of another number of axes than its operand");
  Shape index(ids.rank(), 0);
  for (int64_t i = 0, n = ids.count(); i < n; ++i) {
    auto found = entry(c, ids.at(i), shape[axis]);
    if (!found)
      return;
    int64_t place = 0;
    for (int64_t a = 0; a < ids.rank(); ++a)
      place = place * shape[a] + (a == axis ? *found : index[a]);
    visit(place, i);
    for (int64_t a = ids.rank(); a-- > 0;) {
      if (++index[a] < ids.size(a))
        break;
      index[a] = 0;
    }
  }
}

Results meanings::gather(Call &c) {
  Array x = c.tensor("self").contiguous(), ids = c.tensor("index").contiguous();
  Array result(x.kind(), ids.shape());
  eachGathered(c, x.shape(), ids, c.axis("dim", x.rank()),
               [&](int64_t place, int64_t i) { result.data()[i] = x.at(place); });
  return {result};
}

/// scatter, scatter_add
Results meanings::scatter(Call &c) {
  Array x = c.tensor("self").copied(), ids = c.tensor("index").contiguous();
  Array from = c.tensorOrNumber(c.has("src") ? "src" : "value");
  bool adds = c.name() == "scatter_add";
  if (from.rank() == ids.rank() && ids.rank())
    for (int64_t axis = 0; axis < ids.rank(); ++axis) { // what the index does not reach is unused
      if (from.size(axis) < ids.size(axis)) {
        c.fail("has a source that is smaller than its index");
        return {};
      }
      from = from.sliced(axis, 0, ids.size(axis));
    }
  std::optional<Array> wide = from.expanded(ids.shape());
  if (!wide) {
    c.fail("has a source that does not fit its index");
    return {};
  }
  Array source = wide->contiguous();
  eachGathered(c, x.shape(), ids, c.axis("dim", x.rank()), [&](int64_t place, int64_t i) {
    x.data()[place] = source.at(i) + (adds ? x.at(place) : 0);
  });
  return {x};
}

Results meanings::indexAdd(Call &c) {
  Array x = c.tensor("self").copied(), ids = c.tensor("index").contiguous();
  Array from = c.tensor("source").contiguous();
  int64_t axis = c.axis("dim", x.rank());
  int64_t outer = countOf(x.shape().take_front(axis)), size = x.size(axis);
  int64_t inner = countOf(x.shape().drop_front(axis + 1)), count = ids.count();
  double alpha = c.number("alpha", 1);
  if (from.count() != outer * count * inner)
    c.fail("has a source that does not fit its index");
  for (int64_t o = 0; o < outer && c.failure().empty(); ++o)
    for (int64_t i = 0; i < count; ++i)
      if (auto to = entry(c, ids.at(i), size))
        for (int64_t k = 0; k < inner; ++k)
          x.data()[(o * size + *to) * inner + k] += alpha * from.at((o * count + i) * inner + k);
  return {x};
}

/// The places that lists of indices name, as advanced indexing of NumPy has them.
struct Places {
  Shape shape;                  ///< of what is found
  std::vector<int64_t> entries; ///< places in a row-major array, in the order of `shape`
};

static Places placesOf(Call &c, const Array &x) {
  auto indices = c.tensors("indices");
  // A list of flags stands for the places where they are set, along as many axes as it has.
  llvm::SmallVector<std::optional<Array>> lists;
  for (const std::optional<Array> &index : indices) {
    if (index && index->kind() == Kind::Bool) {
      c.fail("selects by flags, whose count depends on the data");
      return {};
    }
    lists.push_back(index);
  }
  lists.resize(x.rank());
  std::optional<Shape> together = Shape();
  int64_t first = -1, last = -1;
  for (auto [axis, list] : llvm::enumerate(lists))
    if (list) {
      together = together ? broadcast(*together, list->shape()) : together;
      first = first < 0 ? axis : first;
      last = axis;
    }
  if (!together || int64_t(indices.size()) > x.rank() || first < 0) {
    c.fail("has indices whose shapes do not fit");
    return {};
  }
  bool isApart = false;
  for (int64_t axis = first; axis <= last; ++axis)
    isApart |= !lists[axis];
  // The lists' axes stand where the first list is; in front where other axes are between them.
  int64_t start = isApart ? 0 : first, many = together->size();
  Places places;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (!lists[axis])
      places.shape.push_back(x.size(axis));
  places.shape.insert(places.shape.begin() + start, together->begin(), together->end());
  llvm::SmallVector<Array> wide(x.rank());
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (lists[axis])
      wide[axis] = lists[axis]->expanded(*together)->contiguous();
  Shape index(places.shape.size(), 0);
  for (int64_t i = 0, n = countOf(places.shape); i < n; ++i) {
    int64_t listed = 0, place = 0, others = 0;
    for (int64_t j = 0; j < many; ++j)
      listed = listed * places.shape[start + j] + index[start + j];
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
      int64_t here;
      if (lists[axis]) {
        auto found = entry(c, wide[axis].at(listed), x.size(axis));
        if (!found)
          return {};
        here = *found;
      } else {
        here = index[others < start ? others : others + many];
        ++others;
      }
      place = place * x.size(axis) + here;
    }
    places.entries.push_back(place);
    for (int64_t a = places.shape.size(); a-- > 0;) {
      if (++index[a] < places.shape[a])
        break;
      index[a] = 0;
    }
  }
  return places;
}

Results meanings::indexed(Call &c) {
  Array x = c.tensor("self").contiguous();
  Places places = placesOf(c, x);
  if (!c.failure().empty())
    return {};
  Array result(x.kind(), places.shape);
  int64_t width = x.isComplex() ? 2 : 1;
  for (auto [i, place] : llvm::enumerate(places.entries))
    std::copy_n(x.data() + place * width, width, result.data() + i * width);
  return {result};
}

Results meanings::indexPut(Call &c) {
  Array x = c.tensor("self").copied();
  Places places = placesOf(c, x);
  std::optional<Array> wide = c.tensor("values").expanded(places.shape);
  if (!wide || x.isComplex()) {
    c.fail("has values that do not fit its indices");
    return {};
  }
  Array values = wide->contiguous();
  bool adds = c.flag("accumulate", false);
  for (auto [i, place] : llvm::enumerate(places.entries))
    x.data()[place] = values.at(i) + (adds ? x.at(place) : 0);
  return {x};
}
